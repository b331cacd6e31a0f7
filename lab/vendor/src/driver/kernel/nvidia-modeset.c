// hostwright stand-in for the mode setting module: its dependence on the module below it is real.
#include <linux/init.h>
#include <linux/module.h>
#include "nv-version.h"

extern const char *nvidia_stand_in_version(void);
const char *nvidia_modeset_stand_in_version(void);

const char *nvidia_modeset_stand_in_version(void)
{
	return nvidia_stand_in_version();
}
EXPORT_SYMBOL_GPL(nvidia_modeset_stand_in_version);

static int __init nvidia_modeset_stand_in_init(void)
{
	return nvidia_stand_in_version() ? 0 : -ENODEV;
}
module_init(nvidia_modeset_stand_in_init);

static void __exit nvidia_modeset_stand_in_exit(void)
{
}
module_exit(nvidia_modeset_stand_in_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("hostwright stand-in for the NVIDIA mode setting module");
MODULE_VERSION(NV_VERSION_STRING);
