package names

// CNIPlugin is the file name of our CNI plugin, and its type in network configurations.
const CNIPlugin = "ovn_cni"

// OverlayPlugin is the type in the configurations of NetworkAttachmentDefinitions that are networks. Multus calls a
// plugin of that file name for them: it is a link to CNIPlugin.
const OverlayPlugin = "ovn-k8s-cni-overlay"

// CNIConfFile is the file that tells the runtime to use the plugin. Runtimes take the first file of the directory in
// alphabetical order.
const CNIConfFile = "10-ovn-kubernetes.conflist"
