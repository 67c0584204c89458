// Where a frame is in its life: told above `frame.ts`, which alone decides it but for the way into and out of parking.

export type Phase = 'new' | 'live' | 'gathering' | 'unwinding' | 'parking' | 'parked' | 'leaving' | 'gone'
