/**
 * A number that grows with every change that can affect a decision.
 *
 * All parts of a gate and its forks share one, so "has anything changed?" is one comparison. A part must bump it
 * synchronously with its change; otherwise the next call would be decided with the old state.
 */
export class Revision {
  now = 1

  bump(): void {
    this.now++
  }
}
