package names

// FreedAddressSet is the address set whose external_ids record addresses and subnets that were freed lately. It has no
// addresses, no owner and no mark.
const FreedAddressSet = "northbound_freed"
