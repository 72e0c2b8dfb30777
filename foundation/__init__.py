"""What several packages share: settings, errors, connections, the folders of the state, how Spark is launched."""
