/* hostwright stand-in: a library of the driver that nothing in the stack calls; its name and soname are right. */
const char hostwright_note[] __attribute__((used, visibility("default"))) = "hostwright stand-in for " SONAME " of " NV_VERSION;
