# The simulated GPU: stand-in CUDA libraries in one folder, $(O)/libmemtrace-sim, which serves
# programs built for CUDA 11, 12 and 13 (their sonames stand side by side).
#
#   include src/simgpu/simgpu.mk      then  make simgpu
#   make -f src/simgpu/simgpu.mk      alone, from the root of the tree
#
# O               build folder
# CUDA_INCLUDE    folder of the CUDA 13 headers (cuda.h, cuda_runtime_api.h)
# CUDA12_INCLUDE  the same of CUDA 12.8, for libcudart.so.12 and .11.0 alone
# Of other NVIDIA headers cupti.h alone is used, for its records: cuDNN, cuBLAS, NCCL ... declare
# what they define in our headers.
#
# A library is one call of sim_library; its functions are the lines of exports/SONAME.txt.

O              ?= build
PYTHON         ?= python3
CUDA_INCLUDE   ?= /usr/local/cuda/include
CUDA12_INCLUDE ?= $(CUDA_INCLUDE)

SIMGPU_DIR := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
SIMGPU_OUT := $(O)/libmemtrace-sim
SIMGPU_OBJ := $(O)/simgpu

SIMGPU_CFLAGS := -std=gnu11 -O2 -g -fPIC -fno-builtin -Wall -Wextra -Wstrict-prototypes \
	-Wmissing-prototypes -Werror -Wno-unused-parameter -MMD -MP
# -Bsymbolic: a stand-in that calls itself must not be led through a preloaded tracer.
SIMGPU_LDFLAGS := -shared -Wl,-Bsymbolic -Wl,-z,defs -Wl,--as-needed
SIMGPU_LIBS    := -ldl -lpthread

SIMGPU_LIBRARIES :=

.PHONY: simgpu
simgpu: simgpu-all

# $(call sim_library,SONAME,SOURCES,NOT_SUPPORTED_CODE,COMPILER_FLAGS,MAKE_STUBS_FLAGS)
define sim_library
SIMGPU_LIBRARIES += $(SIMGPU_OUT)/$(1)
$(SIMGPU_OBJ)/$(1)/%.o: $(SIMGPU_DIR)/%.c
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(SIMGPU_CFLAGS) -DSIM_NOT_SUPPORTED=$(3) -DSIM_SONAME='"$(1)"' $(4) -c -o $$@ $$<
$(SIMGPU_OBJ)/$(1)/stubs.c: $(SIMGPU_DIR)/exports/$(1).txt $(SIMGPU_DIR)/make-stubs.py
	@mkdir -p $$(@D)
	$$(Q)$$(PYTHON) $(SIMGPU_DIR)/make-stubs.py $(5) $$< $$@ $$(@D)/exports.map
$(SIMGPU_OBJ)/$(1)/stubs.o: $(SIMGPU_OBJ)/$(1)/stubs.c
	$$(Q)$$(CC) $$(SIMGPU_CFLAGS) -I$(SIMGPU_DIR) -c -o $$@ $$<
# Linked beside its place and renamed: a program that runs on the old file keeps it.
$(SIMGPU_OUT)/$(1): $(patsubst %.c,$(SIMGPU_OBJ)/$(1)/%.o,sim.c sim_bytes.c $(2)) $(SIMGPU_OBJ)/$(1)/stubs.o
	@mkdir -p $$(@D)
	$$(Q)$$(PYTHON) $(SIMGPU_DIR)/make-stubs.py --check $(SIMGPU_DIR)/exports/$(1).txt $$^
	$$(Q)$$(CC) $$(SIMGPU_LDFLAGS) -Wl,-soname,$(1) \
		-Wl,--version-script=$(SIMGPU_OBJ)/$(1)/exports.map \
		-o $(SIMGPU_OBJ)/$(1)/linked.so $$^ $$(SIMGPU_LIBS)
	$$(Q)mv $(SIMGPU_OBJ)/$(1)/linked.so $$@
-include $(patsubst %.c,$(SIMGPU_OBJ)/$(1)/%.d,sim.c sim_bytes.c $(2))
endef

SIMGPU_CUDA13 := -isystem $(CUDA_INCLUDE)
SIMGPU_CUDA12 := -isystem $(CUDA12_INCLUDE)

# ---- the driver and the runtime ----
SIMGPU_DRIVER  := $(notdir $(wildcard $(SIMGPU_DIR)/driver_*.c)) sim_card.c
SIMGPU_RUNTIME := $(notdir $(wildcard $(SIMGPU_DIR)/runtime_*.c))
$(eval $(call sim_library,libcuda.so.1,$(SIMGPU_DRIVER),801,$(SIMGPU_CUDA13),--entries))
$(eval $(call sim_library,libcudart.so.13,$(SIMGPU_RUNTIME),801,$(SIMGPU_CUDA13)))
$(eval $(call sim_library,libcudart.so.12,$(SIMGPU_RUNTIME),801,$(SIMGPU_CUDA12)))
$(eval $(call sim_library,libcudart.so.11.0,$(SIMGPU_RUNTIME),801,-DRUNTIME_VERSION=11070 $(SIMGPU_CUDA12)))

# ---- libraries above them; the codes are each library's own "not supported" ----
SIMGPU_CUDNN := cudnn.c cudnn_backend.c cudnn_conv.c cudnn_desc.c cudnn_plan.c cudnn_rnn.c \
	cudnn_sizes.c sim_card.c sim_first_use.c
SIMGPU_NCCL  := $(notdir $(wildcard $(SIMGPU_DIR)/nccl*.c)) sim_driver.c
$(eval $(call sim_library,libcublas.so.13,cublas.c sim_driver.c sim_first_use.c,15,-DSIM_CUDA_MAJOR=13 $(SIMGPU_CUDA13)))
$(eval $(call sim_library,libcublas.so.12,cublas.c sim_driver.c sim_first_use.c,15,-DSIM_CUDA_MAJOR=12 $(SIMGPU_CUDA13)))
$(eval $(call sim_library,libcublas.so.11,cublas.c sim_driver.c sim_first_use.c,15,-DSIM_CUDA_MAJOR=11 $(SIMGPU_CUDA13)))
$(eval $(call sim_library,libcublasLt.so.13,cublaslt.c sim_first_use.c,15,-DSIM_CUDA_MAJOR=13))
$(eval $(call sim_library,libcublasLt.so.12,cublaslt.c sim_first_use.c,15,-DSIM_CUDA_MAJOR=12))
$(eval $(call sim_library,libcublasLt.so.11,cublaslt.c sim_first_use.c,15,-DSIM_CUDA_MAJOR=11))
$(eval $(call sim_library,libcudnn.so.9,$(SIMGPU_CUDNN),3000))
$(eval $(call sim_library,libcudnn.so.8,$(SIMGPU_CUDNN) cudnn_rnn_v6.c,9,-DCUDNN_VERSION_NUMBER=8907))
$(eval $(call sim_library,libnvToolsExt.so.1,nvtx.c,1))
$(eval $(call sim_library,libnccl.so.2,$(SIMGPU_NCCL),5,$(SIMGPU_CUDA13)))
SIMGPU_CUPTI := cupti.c cupti_activity.c cupti_buffers.c sim_driver.c
$(eval $(call sim_library,libcupti.so.13,$(SIMGPU_CUPTI),27,$(SIMGPU_CUDA13)))
$(eval $(call sim_library,libcupti.so.12,$(SIMGPU_CUPTI),27,$(SIMGPU_CUDA13)))
$(eval $(call sim_library,libcupti.so.11.7,$(SIMGPU_CUPTI),27,$(SIMGPU_CUDA13)))
$(eval $(call sim_library,libnvrtc.so.13,nvrtc.c,11,-DSIM_CUDA_MAJOR=13))
$(eval $(call sim_library,libnvrtc.so.12,nvrtc.c,11,-DSIM_CUDA_MAJOR=12))
$(eval $(call sim_library,libnvrtc.so.11.2,nvrtc.c,11,-DSIM_CUDA_MAJOR=11))
$(eval $(call sim_library,libnvidia-ml.so.1,nvml.c sim_card.c,3,$(SIMGPU_CUDA13)))
$(eval $(call sim_library,libcusparse.so.12,cusparse.c sim_first_use.c,10))
$(eval $(call sim_library,libcusparse.so.11,cusparse.c sim_first_use.c,10))
$(eval $(call sim_library,libcusparseLt.so.0,,10))
$(eval $(call sim_library,libcusolver.so.12,cusolver.c sim_driver.c sim_first_use.c,9,-DSIM_CUDA_MAJOR=13 $(SIMGPU_CUDA13)))
$(eval $(call sim_library,libcusolver.so.11,cusolver.c sim_driver.c sim_first_use.c,9,-DSIM_CUDA_MAJOR=12 $(SIMGPU_CUDA13)))
$(eval $(call sim_library,libcufft.so.12,cufft.c sim_first_use.c,16,-DSIM_CUDA_MAJOR=13))
$(eval $(call sim_library,libcufft.so.11,cufft.c sim_first_use.c,16,-DSIM_CUDA_MAJOR=12))
$(eval $(call sim_library,libcufft.so.10,cufft.c sim_first_use.c,16,-DSIM_CUDA_MAJOR=11))
$(eval $(call sim_library,libcurand.so.10,,999))
$(eval $(call sim_library,libcufile.so.0,,5001))
$(eval $(call sim_library,libnvshmem_host.so.3,,7))

# ---- for dry runs, preloaded ----
$(eval $(call sim_library,libsimgpu-values.so,values.c sim_driver.c,1,$(SIMGPU_CUDA13)))

SIMGPU_PYTHON := $(SIMGPU_OUT)/python/sitecustomize.py
$(SIMGPU_PYTHON): $(SIMGPU_DIR)/python/sitecustomize.py
	@mkdir -p $(@D)
	$(Q)cp $< $@

# The name by which PyTorch 2.1 opens the driver.
SIMGPU_DRIVER_NAME := $(SIMGPU_OUT)/libcuda.so
$(SIMGPU_DRIVER_NAME): $(SIMGPU_OUT)/libcuda.so.1
	$(Q)ln -sf $(<F) $@

.PHONY: simgpu-all
simgpu-all: $(SIMGPU_LIBRARIES) $(SIMGPU_PYTHON) $(SIMGPU_DRIVER_NAME)
