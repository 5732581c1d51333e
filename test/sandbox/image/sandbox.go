package image

import (
	"os"
	"path/filepath"
)

// Names of the sandbox's images, which no registry has.
const (
	Pause = "localhost/pause:1"
	Echo  = "localhost/echo:1"
)

// Sandbox makes the sandbox's images in dir, from the programs in bin and from busybox, and returns their tar files. It
// makes them anew each time, which takes a fraction of a second.
func Sandbox(dir, bin, busybox string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	links := map[string]string{}
	for _, applet := range []string{"sh", "cat", "ls", "ip", "nc", "ping", "ping6", "wget", "hostname", "sleep", "env",
		"traceroute", "nslookup"} {
		links["/bin/"+applet] = "busybox"
	}
	images := map[string]Image{
		"pause.tar": {Name: Pause, Entrypoint: []string{"/bin/pause"},
			Files: map[string]string{"/bin/pause": filepath.Join(bin, "pause")}},
		"echo.tar": {
			Name: Echo, Entrypoint: []string{"/bin/echo-server", "serve"}, Links: links,
			Files: map[string]string{"/bin/echo-server": filepath.Join(bin, "echo"), "/bin/busybox": busybox},
		},
	}
	var files []string
	for name, image := range images {
		file := filepath.Join(dir, name)
		if err := image.Write(file); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
