/* A stand-in for libnvidia-ml.so.1. FAKE_NVML names the machine to play; see tests/it/detect.rs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, NOT_LOADED = 9, LOST = 15, MISMATCH = 18 };

struct gpu { const char *name; int major, minor; };
struct handle { unsigned index; int instance; };

static const struct gpu MIXED[] = {
    {"NVIDIA GeForce RTX 3090", 8, 6}, {"NVIDIA GeForce GTX 1070 Ti", 6, 1}, {"Tesla V100-SXM2-16GB", 7, 0},
    {"Tesla T4", 7, 5}, {"NVIDIA A100-SXM4-40GB", 8, 0}, {"NVIDIA GeForce RTX 4090", 8, 9},
    {"NVIDIA H100 80GB HBM3", 9, 0}, {"NVIDIA GeForce RTX 5090", 12, 0},
};
static struct handle handles[16];

static int plays(const char *scenario) {
    const char *wanted = getenv("FAKE_NVML");
    return wanted && strcmp(wanted, scenario) == 0;
}

int nvmlInit_v2(void) {
    if (plays("mismatch")) return MISMATCH;
    if (plays("permission")) return NO_PERMISSION;
    if (plays("not-loaded")) return NOT_LOADED;
    return OK;
}
int nvmlShutdown(void) { return OK; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "550.54.14"); return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12040; return OK; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = plays("none") ? 0 : plays("mig") ? 2 : 8;
    return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct handle **device) {
    if (index >= 8) return NOT_FOUND;
    if (plays("lost") && index == 3) return LOST;
    handles[index] = (struct handle){index, -1};
    *device = &handles[index];
    return OK;
}

/* In the mig machine, GPU 0 is an A100 with instances and GPU 1 a T4. */
static const struct gpu *gpu_of(const struct handle *device) {
    if (plays("mig")) return &MIXED[device->index == 0 ? 4 : 3];
    return &MIXED[device->index];
}
int nvmlDeviceGetName(struct handle *device, char *text, unsigned size) {
    snprintf(text, size, "%s", gpu_of(device)->name);
    return OK;
}
int nvmlDeviceGetUUID(struct handle *device, char *text, unsigned size) {
    if (device->instance < 0) snprintf(text, size, "GPU-%08u-0000-0000-0000-000000000000", device->index + 1);
    else snprintf(text, size, "MIG-%08d-0000-0000-0000-000000000000", device->instance + 1);
    return OK;
}
int nvmlDeviceGetCudaComputeCapability(struct handle *device, int *major, int *minor) {
    if (plays("old")) return NOT_SUPPORTED;
    if (plays("removed") && device->index == 5) return LOST;
    *major = gpu_of(device)->major;
    *minor = gpu_of(device)->minor;
    return OK;
}
int nvmlDeviceGetMigMode(struct handle *device, unsigned *current, unsigned *pending) {
    if (!plays("mig") || device->index != 0) return NOT_SUPPORTED;
    *current = *pending = 1;
    return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(struct handle *device, unsigned *count) {
    *count = device->index == 0 ? 7 : 0;
    return OK;
}
int nvmlDeviceGetMigDeviceHandleByIndex(struct handle *device, unsigned slot, struct handle **instance) {
    if (slot != 0 && slot != 2) return NOT_FOUND;
    handles[8 + slot] = (struct handle){device->index, (int)slot};
    *instance = &handles[8 + slot];
    return OK;
}
