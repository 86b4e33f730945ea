/* base/cxx_name: names for people from C++ symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cxx_name.h"

static void expect(const char *symbol, const char *expected)
{
	char name[CXX_NAME_BYTES];
	cxx_name(name, symbol);
	assert_string_equal(name, expected);
}

static void namespaces_and_classes_are_named(void **state)
{
	(void)state;
	expect("_Z4mainiPPc", "main");
	expect("_ZN2at6native10empty_cudaEN3c108ArrayRefIlEESt8optionalINS1_10ScalarTypeEE",
	       "at::native::empty_cuda");
	expect("_ZN5torch8autograd9generated11MmBackward05applyEOSt6vectorIN2at6TensorESaIS4_EE",
	       "torch::autograd::generated::MmBackward0::apply");
	expect("_ZN3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocator6mallocEPPvamP11CU"
	       "stream_"
	       "st",
	       "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::malloc");
	expect("_ZNK1A1BcvbEv", "A::B::operator type");
	expect("_ZL6staticv", "static");
	expect("_ZN12_GLOBAL__N_13oneEv", "(anonymous namespace)::one");
}

static void template_arguments_are_an_ellipsis(void **state)
{
	(void)state;
	expect("_Z3maxIiET_S0_S0_", "max<...>");
	expect("_ZN3BoxIN3BoxIiEEE3putERKS1_", "Box<...>::put");
	expect("_ZN1AIXaasrSt7is_sameIT_iE5valuentsr3std3fooIT_EE5valueEE1fEv", "A<...>::f");
	expect("_ZN1AIJLi1ELb0ELDn0EXadL_Z1gvEEEE1fEPFvT_DpT0_E", "A<...>::f");
	expect("_Z1fIiEDTcldtfp_4sizeEERKT_", "f<...>");
}

static void special_members_repeat_their_class(void **state)
{
	(void)state;
	expect("_ZN1A3BoxIiEC2ERKi", "A::Box<...>::Box");
	expect("_ZN1A3BoxIiED0Ev", "A::Box<...>::~Box");
	expect("_ZNSsC1Ev", "std::string::basic_string");
	expect("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC2EOS4_RKS3_",
	       "std::__cxx11::basic_string<...>::basic_string");
	expect("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", "std::operator<<<...>");
	expect("_ZN1AclEv", "A::operator()");
	expect("_Znwm", "operator new");
	expect("_ZThn16_N1A1fEv", "A::f");
	expect("_ZTv0_n24_N1A1fEv", "A::f");
	expect("_ZTV1A", "vtable for A");
}

static void lambdas_name_the_function_around_them(void **state)
{
	(void)state;
	expect("_ZZ4mainENKUlvE_clEv", "main::{lambda}");
	expect("_ZZZN1A1fERKNS_1BEENKUlvE_clEvENKUliE0_clEi", "A::f::{lambda}");
	expect("_ZZN1A1fEvE5local", "A::f::local");
	expect("_ZZ1fvE5local_0", "f::local");
}

static void other_symbols_stay(void **state)
{
	(void)state;
	expect("cuMemAlloc_v2", "cuMemAlloc_v2");
	expect("memcpy@@GLIBC_2.14", "memcpy");
	expect("foo.part.0.cold", "foo");
	expect("_ZN1A1fEv.constprop.0", "A::f");
	expect("_ZGVcN4v_Sleef_acos_u10", "_ZGVcN4v_Sleef_acos_u10");
	expect("_Z", "_Z");
	expect("_ZN", "_ZN");
	expect("", "");
	expect(".Lx", ".Lx");
}

static void a_symbol_cut_short_gives_its_beginning(void **state)
{
	(void)state;
	expect("_ZN2at6native10empty_cudaEN3c1", "at::native::empty_cuda");
	expect("_ZN2at6native10emp", "at::native...");
	expect("_ZN2at6nativeI", "at::native<...>...");
}

static void long_names_lose_their_middle(void **state)
{
	char symbol[512] = "_ZN2at6native60", name[CXX_NAME_BYTES];
	(void)state;
	memset(symbol + strlen(symbol), 'x', 60);
	strcat(symbol, "60");
	memset(symbol + strlen(symbol), 'y', 60);
	strcat(symbol, "5applyEv");
	cxx_name(name, symbol);
	assert_true(strlen(name) <= 100);
	assert_ptr_equal(strstr(name, "at::native::...::yyy"), name);
	assert_string_equal(name + strlen(name) - 7, "::apply");
	memset(symbol, 'z', 400);
	symbol[400] = 0;
	cxx_name(name, symbol);
	assert_int_equal(strlen(name), 99);
}

/* Deep nesting and endless lists end, and nothing is read behind the symbol. */
static void hostile_symbols_end(void **state)
{
	static char symbol[40000];
	static const char *const pieces[] = {"I",   "N", "PZ", "F",      "XT_",
					     "1aI", "J", "Dp", "UlvE_I", "X"};
	char name[CXX_NAME_BYTES];
	(void)state;
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		size_t bytes = strlen(pieces[i]), used = 5;
		memcpy(symbol, "_ZN1a", 5);
		for (; used + bytes < sizeof symbol - 1; used += bytes)
			memcpy(symbol + used, pieces[i], bytes);
		symbol[used] = 0;
		cxx_name(name, symbol);
		assert_true(strlen(name) < sizeof name);
	}
	expect("_Z99999999999999999999999a", "_Z99999999999999999999999a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(namespaces_and_classes_are_named),
		cmocka_unit_test(template_arguments_are_an_ellipsis),
		cmocka_unit_test(special_members_repeat_their_class),
		cmocka_unit_test(lambdas_name_the_function_around_them),
		cmocka_unit_test(other_symbols_stay),
		cmocka_unit_test(a_symbol_cut_short_gives_its_beginning),
		cmocka_unit_test(long_names_lose_their_middle),
		cmocka_unit_test(hostile_symbols_end),
	};
	return cmocka_run_group_tests_name("cxx_name", tests, NULL, NULL);
}
