package nodoc // want revive
