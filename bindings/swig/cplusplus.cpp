// Nothing but its language: tells Meson that a library made of other targets' objects is C++.
