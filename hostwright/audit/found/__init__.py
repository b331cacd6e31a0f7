"""What is installed on hosts, layer by layer, also by hand; which hosts are alike in it; and stacks drafted from it."""
