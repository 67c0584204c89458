// Waits for what other processes bring about.

import { setTimeout } from 'node:timers/promises'

/** Looks again and again until there is something. */
export async function until<Found>(what: string, look: () => Found | Promise<Found>, ms = 15_000): Promise<Found & {}> {
  for (const began = Date.now(); ; await setTimeout(10)) {
    const found = await look()
    if (found !== undefined && found !== null && found !== false) return found
    if (Date.now() - began > ms) throw new Error(`Waited ${ms} ms in vain until ${what}.`)
  }
}
