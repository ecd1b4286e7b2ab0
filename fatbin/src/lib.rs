//! Reads NVIDIA GPU code containers.
