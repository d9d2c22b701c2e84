"""What other people's viewers load of simplace: a tab for TensorBoard, extensions for Model Explorer."""
