/**
 * A number that grows with every change that a decision may depend on.
 *
 * All parts of a gate and its forks share one, so "has anything changed?" is one comparison. A part that changes bumps
 * it in the same turn: without that, the next call would be decided as before.
 */
export class Revision {
  now = 1

  bump(): void {
    this.now++
  }
}
