module digital-human-provider/deploy/dev-cluster/guard

go 1.26.0
