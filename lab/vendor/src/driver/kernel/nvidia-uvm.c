// hostwright stand-in for the unified memory module: its dependence on the module below it is real.
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include "nv-version.h"

extern const char *nvidia_stand_in_version(void);

static const struct file_operations nothing = { .owner = THIS_MODULE };
static struct miscdevice memory = {
	.minor = MISC_DYNAMIC_MINOR, .name = "nvidia-uvm", .fops = &nothing, .mode = 0666,
};

static int __init nvidia_uvm_stand_in_init(void)
{
	return nvidia_stand_in_version() ? misc_register(&memory) : -ENODEV;
}
module_init(nvidia_uvm_stand_in_init);

static void __exit nvidia_uvm_stand_in_exit(void)
{
	misc_deregister(&memory);
}
module_exit(nvidia_uvm_stand_in_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("hostwright stand-in for the NVIDIA unified memory module");
MODULE_VERSION(NV_VERSION_STRING);
