// hostwright stand-in for NVIDIA's kernel module: it carries the driver's version, and takes the made-up card of a
// virtual machine. Without a card it refuses to load, as NVIDIA's does.
#include <linux/init.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include "nv-version.h"

const char *nvidia_stand_in_version(void);

const char *nvidia_stand_in_version(void)
{
	return NV_VERSION_STRING;
}
EXPORT_SYMBOL_GPL(nvidia_stand_in_version);

static int taken;

// Device files that can be opened and held; a module stays in the kernel while one is.
static const struct file_operations nothing = { .owner = THIS_MODULE };
static struct miscdevice control = {
	.minor = MISC_DYNAMIC_MINOR, .name = "nvidiactl", .fops = &nothing, .mode = 0666,
};
static struct miscdevice first = {
	.minor = MISC_DYNAMIC_MINOR, .name = "nvidia0", .fops = &nothing, .mode = 0666,
};

static const char *bus;

// The first register of every real chip is its number; a real card is not ours to take.
static bool made_up(struct pci_dev *card)
{
	void __iomem *registers = pci_iomap(card, 0, sizeof(u32));
	u32 chip;

	if (!registers)
		return false;
	chip = ioread32(registers);
	pci_iounmap(card, registers);
	return chip == 0;
}

static int nvidia_stand_in_probe(struct pci_dev *card, const struct pci_device_id *id)
{
	if (pci_enable_device(card))
		return -ENODEV;
	if (!made_up(card)) {
		pci_disable_device(card);
		return -ENODEV;
	}
	if (!taken)
		bus = pci_name(card);
	taken++;
	return 0;
}

static void nvidia_stand_in_remove(struct pci_dev *card)
{
	pci_disable_device(card);
}

static const struct pci_device_id cards[] = {
	{ PCI_VENDOR_ID_NVIDIA, PCI_ANY_ID, PCI_ANY_ID, PCI_ANY_ID, PCI_CLASS_DISPLAY_3D << 8, ~0 },
	{ PCI_VENDOR_ID_NVIDIA, PCI_ANY_ID, PCI_ANY_ID, PCI_ANY_ID, PCI_CLASS_DISPLAY_VGA << 8, ~0 },
	{ }
};
MODULE_DEVICE_TABLE(pci, cards);

static struct pci_driver driver = {
	.name = "nvidia",
	.id_table = cards,
	.probe = nvidia_stand_in_probe,
	.remove = nvidia_stand_in_remove,
};

static int show_version(struct seq_file *file, void *unused)
{
	seq_puts(file, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " NV_VERSION_STRING "  (hostwright stand-in)\n");
	seq_puts(file, "GCC version:  none\n");
	return 0;
}

static int show_card(struct seq_file *file, void *unused)
{
	seq_puts(file, "Model: \t\t Tesla T4\nIRQ:   \t\t 16\nGPU UUID: \t GPU-48570000-0000-4000-8000-000000000001\n");
	seq_puts(file, "Serial: \t 1320000000001\nVideo BIOS: \t 90.04.96.00.01\nBus Type: \t PCIe\n");
	seq_printf(file, "Bus Location: \t %s\nDevice Minor: \t 0\n", bus);
	return 0;
}

// What nvidia-smi's double and the probes read of the loaded module and of its first card.
static void show_ourselves(void)
{
	struct proc_dir_entry *ours = proc_mkdir("driver/nvidia", NULL);
	struct proc_dir_entry *card = proc_mkdir_data("gpus", 0, ours, NULL);

	proc_create_single("version", 0444, ours, show_version);
	card = proc_mkdir_data(bus, 0, card, NULL);
	proc_create_single("information", 0444, card, show_card);
}

static int __init nvidia_stand_in_init(void)
{
	int status = pci_register_driver(&driver);

	if (status)
		return status;
	if (!taken) {
		pr_err("hostwright stand-in: NVRM: No NVIDIA GPU found.\n");
		pci_unregister_driver(&driver);
		return -ENODEV;
	}
	status = misc_register(&control);
	if (status)
		goto no_control;
	status = misc_register(&first);
	if (status)
		goto no_first;
	show_ourselves();
	return 0;
no_first:
	misc_deregister(&control);
no_control:
	pci_unregister_driver(&driver);
	return status;
}
module_init(nvidia_stand_in_init);

static void __exit nvidia_stand_in_exit(void)
{
	remove_proc_subtree("driver/nvidia", NULL);
	misc_deregister(&first);
	misc_deregister(&control);
	pci_unregister_driver(&driver);
}
module_exit(nvidia_stand_in_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("hostwright stand-in for the NVIDIA driver");
MODULE_VERSION(NV_VERSION_STRING);
