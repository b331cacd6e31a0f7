# Exits with 1 if a module of others uses the driver's: nothing was stopped yet. Needs `held_by`.
for other in $(held_by ""); do
  echo "hostwright: the kernel module $other, of somebody else, uses the driver's, so nothing was stopped"
  exit 1
done
