# Prints nvidia-smi's report without the supported clocks. What is read of it is bounded at the source ($most bytes): a
# program that prints without end is ended by the closed pipe, not by the time limit. The last line is the exit status;
# where it is missing, the report was cut. (dash's ${report##*} would take quadratic time to find it.)
: "${most:?}"
command -v nvidia-smi >/dev/null 2>&1 || exit 127
report=$({
  status=0
  timeout -k 5 30 nvidia-smi -q -x || status=$?
  printf '\n%s\n' "$status"
} | head -c "$most" | sed '/^[[:space:]]*<supported_graphics_clock>/d')
status=$(printf '%s\n' "$report" | tail -n 1 | head -c 4)
case $status in
[0-9] | [0-9][0-9] | [0-9][0-9][0-9]) report=$(printf '%s\n' "$report" | sed '$d') ;;
*) status=1 ;;
esac
printf '%s\n' "$report"
case $report in
*'</nvidia_smi_log>'*) [ "$status" -eq 0 ] || echo "nvidia-smi ended with status $status" ;;
*) exit "$status" ;;
esac
