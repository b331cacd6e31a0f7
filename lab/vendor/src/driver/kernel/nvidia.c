// hostwright stand-in for NVIDIA's kernel module: it compiles, carries the driver's version, and does nothing.
#include <linux/init.h>
#include <linux/module.h>
#include "nv-version.h"

const char *nvidia_stand_in_version(void);

const char *nvidia_stand_in_version(void)
{
	return NV_VERSION_STRING;
}
EXPORT_SYMBOL_GPL(nvidia_stand_in_version);

static int __init nvidia_stand_in_init(void)
{
	return -ENODEV;
}
module_init(nvidia_stand_in_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("hostwright stand-in for the NVIDIA driver");
MODULE_VERSION(NV_VERSION_STRING);
MODULE_ALIAS("pci:v000010DEd*sv*sd*bc03sc02i00*");
MODULE_ALIAS("pci:v000010DEd*sv*sd*bc03sc00i00*");
