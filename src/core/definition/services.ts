// The application's own services, which code of every style gets.

/** The application's own services, as given to `createHoldfast`. Declare yours by augmenting this interface. */
export interface Services {}
