"""What the commands give and the reports show; one noun a file."""
