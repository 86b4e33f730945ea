"""What went wrong in other libraries that stand between programs and CUDA, as their users reported it,
and the test here that would see it. Left out is what no test can stage: other processors, a genuine
driver's own checks, patched machine code."""

import re

import support

FAILURES = {
    "PyTorch crashes": "test_report_equals_the_account_of_pytorch",
    "import torch waits for ever: RTLD_NEXT was asked in the wrong name":
        "test_who_asks_for_the_next_definition_stays_the_asker",
    "the second look-up by RTLD_NEXT gives NULL": "test_another_preloaded_library_is_still_asked",
    "cudnnCreate calls itself: every name with cu was taken for CUDA's":
        "test_look_ups_of_other_names_are_answered_as_without_us",
    "the handle of a look-up is ignored": "test_a_handle_is_answered_from_its_own_library",
    "a symbol that only some glibc has":
        "test_every_symbol_that_it_takes_from_the_process_is_accounted_for",
    "cuMemGetInfo without a place for the answer crashes":
        "test_missing_places_for_an_answer_are_the_driver_s_matter",
    "the device is not known on a thread without context; several contexts":
        "test_every_driver_row_is_one_event",
    "NCCL and data parallel training fail": "test_report_equals_the_account_of_other_frameworks",
    "memory of graph nodes, pools and stream order is not known at its free":
        "test_what_is_tracked_and_the_contexts_are_what_the_driver_says_is_in_use",
    "memory leaks when the bookkeeping fails": "test_a_place_that_cannot_be_written_costs_one_line",
    "another code than the driver's is returned":
        "test_failing_calls_give_the_driver_s_own_codes_and_are_recorded",
    "a lock is never released after SIGKILL":
        "test_kill_at_any_moment_leaves_a_trace_of_all_that_returned",
    "a cloned child runs its parent's exit":
        "test_a_child_that_allocates_nothing_is_silent_and_closes_nothing",
    "fork and exit wait for ever":
        "test_a_child_does_not_wait_for_a_lock_that_a_thread_left_behind_holds",
    "a function has other parameters in another version":
        "test_every_linked_runtime_row_is_one_event",
    "cuGetProcAddress gives functions that are not hooked": "test_every_driver_row_is_one_event",
    "a driver without the newest functions is refused":
        "test_weak_references_to_the_runtime_stay_null_and_the_driver_s_give_an_error",
    "a static runtime is not seen":
        "test_every_driver_row_is_one_event_in_a_library_opened_for_itself",
    "expandable segments are not seen":
        "test_report_equals_the_account_with_the_setting_of_the_program",
    "every child fails to start: a needed library is missing": "test_it_needs_libc_alone",
    "several preloads, in any order": "test_preloads_before_and_behind_us_are_all_called",
    "another interposer of dlsym": "test_another_interposer_of_dlsym_is_asked_and_asks_us",
    "malloc is needed while dlsym looks for malloc": "test_a_malloc_that_looks_for_the_next_one_is_answered",
    "an allocation in a hook waits for malloc's lock": "test_a_call_that_is_recorded_allocates_nothing",
    "an empty name, or an unknown one, is asked of cuGetProcAddress; the symbol's status stays unset":
        "test_the_genuine_runtime_gets_the_right_answer_to_each_look_up",
    "memory of the host by cuMemCreate has no device": "test_memory_given_back_another_way",
    "cuMemMap is missing": "test_memory_behind_handles_is_counted_as_the_driver_counts_it",
    "the profiler finds CUPTI taken": "test_pytorch_and_its_profiler_work_as_without_us",
    "memory that another process shares is counted twice":
        "test_memory_of_another_process_is_counted_where_it_was_obtained",
    "contexts and modules are counted nowhere":
        "test_untracked_memory_is_known_without_a_call_of_the_program",
    "a part of a device (MIG) is taken for the whole":
        "test_a_device_that_cannot_be_told_from_its_neighbour_is_not_read",
    "NVML's figure of managed memory is wrong": "test_that_managed_memory_may_be_elsewhere_is_said",
    "NVML's figure of a process is wrong in a container":
        "test_in_a_container_only_the_device_as_a_whole_is_known",
    "a dump waits for the GIL": "test_walks_wait_for_no_lock",
    "the history grows without a bound":
        "test_long_run_stays_within_its_bound_and_its_figures_are_exact",
    "ranks, or containers, write one file":
        "test_processes_that_all_have_the_pid_1_do_not_overwrite_each_other",
    "CUDA's exit handlers run before the tracer's":
        "test_frees_in_destructors_of_libraries_are_recorded_or_counted_as_late",
    "NCCL's ranks wait for ever": "test_torchrun_s_ranks_have_a_trace_each_and_their_own_account",
    "what is freed in exit handlers is lost":
        "test_frees_in_exit_handlers_and_destructors_are_recorded",
    "a use after a library was closed": "test_a_driver_that_comes_back_elsewhere_is_traced_again",
    "RTLD_DEEPBIND and dlmopen go past unseen": "test_ways_past_us_are_told",
    "CUDA appears where there is none": "test_cuda_does_not_appear_where_it_is_not",
    "references to a handle are counted wrong":
        "test_memory_behind_handles_is_counted_as_the_driver_counts_it",
    "a call while a stream is captured breaks the capture":
        "test_a_failed_free_names_the_free_and_leaves_the_memory_live",
    "a look-up without a name, before cuInit or for a hidden table crashes; its status is not set":
        "test_odd_look_ups_are_answered_as_without_us",
    "sizes of arrays are wrong; a mapping of virtual memory is not seen": "test_every_linked_runtime_row_is_one_event",
    "the profiler's one subscription is taken away": "test_pytorch_and_its_profiler_work_as_without_us",
    "files of processes with one pid, as in containers, overwrite each other":
        "test_processes_that_all_have_the_pid_1_do_not_overwrite_each_other",
    "a child of a launcher or loader hangs": "test_workers_of_a_data_loader_leave_account_and_output_as_they_are",
    "memory that NCCL takes by handles is not counted":
        "test_memory_behind_handles_is_counted_as_the_driver_counts_it",
    "a thread lives on after main": "test_a_thread_that_outlives_main_is_recorded_to_its_end",
    "the library cannot be opened beside others that use static TLS":
        "test_it_loads_beside_other_users_of_static_tls",
    "an exception leaves the thread unseen": "test_exceptions_pass_through_hooks_as_without_us",
    "programs that use no GPU are disturbed": "test_a_program_without_cuda_is_left_alone",
}


def test_each_failure_of_others_has_a_test_here():
    names = set()
    for path in (support.ROOT / "tests" / "integration").glob("test_*.py"):
        names |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.M))
    assert set(FAILURES.values()) <= names
