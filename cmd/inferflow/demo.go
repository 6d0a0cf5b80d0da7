package main

// demoName is the model inside the program.
const demoName = "demo"
