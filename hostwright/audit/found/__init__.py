"""What hosts have that anybody set up, layer by layer; which hosts are alike in it; and stacks made of it."""
