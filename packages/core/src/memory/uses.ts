/** The uses of one key, oldest first. */
export class Uses {
  /** Never goes down, so that a place is found by halving. Those before `#head` are gone. */
  #times: number[]
  #head = 0
  /** The longest window that was asked for: a use is kept until it has left that. */
  windowMs: number

  /** A list of one takes a tenth of the memory of one that something was pushed to. */
  constructor(firstMs: number, windowMs: number) {
    this.#times = [firstMs]
    this.windowMs = windowMs
  }

  get count(): number {
    return this.#times.length - this.#head
  }

  /** When the last of them leaves the longest window. */
  get passesAtMs(): number {
    return (this.#times.at(-1) ?? Number.NEGATIVE_INFINITY) + this.windowMs
  }

  timeMs(place: number): number {
    return this.#times[this.#head + place] as number
  }

  push(nowMs: number, windowMs: number): void {
    this.#times.push(nowMs)
    if (windowMs > this.windowMs) this.windowMs = windowMs
  }

  /** Forgets the uses that have left the longest window. */
  dropPassed(nowMs: number): void {
    const passed = this.countPassed(this.windowMs, nowMs)
    if (passed === 0) return
    this.#head += passed
    if (this.#head * 2 <= this.#times.length) return
    this.#times = this.#times.slice(this.#head)
    this.#head = 0
  }

  /** Counts the uses that have left a window. A use at `t` leaves it exactly at `t + windowMs`. */
  countPassed(windowMs: number, nowMs: number): number {
    // Mostly none has: the oldest is looked at first, as this runs in each call.
    if (this.count === 0 || this.timeMs(0) + windowMs > nowMs) return 0
    return this.#firstWhere((timeMs) => timeMs + windowMs > nowMs)
  }

  /** Removes the latest use at a time, or the latest of all; `false` where there is none. */
  remove(atMs: number | undefined): boolean {
    const place = atMs === undefined ? this.count - 1 : this.#firstWhere((timeMs) => timeMs > atMs) - 1
    if (place < 0 || (atMs !== undefined && this.timeMs(place) !== atMs)) return false
    this.#times.splice(this.#head + place, 1)
    return true
  }

  /** Returns the first place for which a condition holds that holds for all after it too. */
  #firstWhere(holds: (timeMs: number) => boolean): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (holds(this.timeMs(middle))) high = middle
      else low = middle + 1
    }
    return low
  }
}
