package names

// CNIPlugin is the file name of our CNI plugin, and its type in network configurations.
const CNIPlugin = "ovn_cni"

// CNIConfFile is the file that tells the runtime to use the plugin. Runtimes take the first file of the directory in
// alphabetical order.
const CNIConfFile = "10-ovn-kubernetes.conflist"
