module example.org/gcx/examples/go

go 1.18

require example.org/gcx/bindings/go v0.0.0

require github.com/ebitengine/purego v0.10.2 // indirect

replace example.org/gcx/bindings/go => ../../bindings/go
