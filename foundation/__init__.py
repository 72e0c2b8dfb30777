"""What all other rooms stand on: settings, errors, connections, the folders of the state, how Spark is launched."""
