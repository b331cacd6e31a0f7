"""Dead hosts of the lab brought back to service by ``invoke rebuild``, over real SSH and Redfish."""
