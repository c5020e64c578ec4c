// The program of every link test: a library that needs more than it declares does not link with it.
int main() { return 0; }
