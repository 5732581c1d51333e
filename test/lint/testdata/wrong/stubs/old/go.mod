module example.com/old

go 1.26.0
