"""Dead lab hosts restored by ``invoke rebuild``, over real SSH and Redfish."""
