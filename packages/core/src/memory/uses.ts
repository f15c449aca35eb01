/** The uses of one key, oldest first. Each has a time, and a cost if the limit has costs. */
export class Uses {
  /** Sorted times, for binary search. Entries before `#head` are removed. */
  #times: number[]
  /** The sum of the costs up to and including each entry. Absent while each costs 1. */
  #sums: number[] | undefined
  #head = 0
  /** The longest requested window. A use is kept until it has left this window. */
  windowMs: number

  /** An array literal of one element takes a tenth of the memory of an array that was pushed to. */
  constructor(firstMs: number, windowMs: number, cost?: number) {
    this.#times = [firstMs]
    this.#sums = cost === undefined ? undefined : [cost]
    this.windowMs = windowMs
  }

  /** The number of entries. */
  get count(): number {
    return this.#times.length - this.#head
  }

  /** The time when the last use leaves the longest window. */
  get passesAtMs(): number {
    return (this.#times.at(-1) ?? Number.NEGATIVE_INFINITY) + this.windowMs
  }

  push(nowMs: number, windowMs: number, cost?: number): void {
    if (this.#sums) {
      if (this.#sumBefore(this.count) + (cost ?? 1) > Number.MAX_SAFE_INTEGER) this.#compact()
      this.#sums.push(this.#sumBefore(this.count) + (cost ?? 1))
    }
    this.#times.push(nowMs)
    if (windowMs > this.windowMs) this.windowMs = windowMs
  }

  /** Removes the uses that have left the longest window. */
  dropPassed(nowMs: number): void {
    const passed = this.#countPassed(this.windowMs, nowMs)
    if (passed === 0) return
    this.#head += passed
    if (this.#head * 2 > this.#times.length) this.#compact()
  }

  /** Frees the memory of removed entries. Sums start at 0 again. */
  #compact(): void {
    const before = this.#sumBefore(0)
    this.#sums = this.#sums?.slice(this.#head).map((sum) => sum - before)
    this.#times = this.#times.slice(this.#head)
    this.#head = 0
  }

  /** Returns what was used within a window. A use at `t` leaves it exactly at `t + windowMs`. */
  usedIn(windowMs: number, nowMs: number): number {
    const passed = this.#countPassed(windowMs, nowMs)
    return this.#sumBefore(this.count) - this.#sumBefore(passed)
  }

  /** Returns the time of the use with which an amount has left a window; `undefined` if the window holds less. */
  timeOfLeaving(amount: number, windowMs: number, nowMs: number): number | undefined {
    const passed = this.#countPassed(windowMs, nowMs)
    const sum = this.#sumBefore(passed) + amount
    const place = this.#sums ? this.#firstWhere((at) => this.#sumBefore(at + 1) >= sum) : sum - 1
    return place < this.count ? this.#timeMs(place) : undefined
  }

  /** Removes the latest use at a time, or the latest of all. Returns `false` if there is none. */
  remove(atMs: number | undefined, cost?: number): boolean {
    const place = atMs === undefined ? this.count - 1 : this.#placeOf(atMs, cost)
    if (place < 0) return false
    this.#changeCost(place, 0)
    this.#times.splice(this.#head + place, 1)
    this.#sums?.splice(this.#head + place, 1)
    return true
  }

  /** Changes the cost of the latest use that has this time and cost, if any. */
  changeCost(atMs: number | undefined, cost: number, to: number): void {
    const place = atMs === undefined ? -1 : this.#placeOf(atMs, cost)
    if (place >= 0) this.#changeCost(place, to)
  }

  #changeCost(place: number, to: number): void {
    const sums = this.#sums
    if (sums === undefined) return
    const change = to - (this.#sumBefore(place + 1) - this.#sumBefore(place))
    for (let at = this.#head + place; at < sums.length; at++) sums[at] = (sums[at] as number) + change
  }

  /** Returns the index of the latest use with this time and, if given, cost; -1 if there is none. */
  #placeOf(atMs: number, cost: number | undefined): number {
    const isOther = (place: number): boolean =>
      cost !== undefined && this.#sumBefore(place + 1) - this.#sumBefore(place) !== cost
    let place = this.#firstWhere((at) => this.#timeMs(at) > atMs) - 1
    while (place >= 0 && this.#timeMs(place) === atMs && isOther(place)) place--
    return place >= 0 && this.#timeMs(place) === atMs ? place : -1
  }

  #timeMs(place: number): number {
    return this.#times[this.#head + place] as number
  }

  /** Returns the sum of the costs before an index. */
  #sumBefore(place: number): number {
    const at = this.#head + place
    if (this.#sums === undefined) return place
    return at === 0 ? 0 : (this.#sums[at - 1] as number)
  }

  #countPassed(windowMs: number, nowMs: number): number {
    // Usually no use has left, so the oldest is checked first; this runs in each call.
    if (this.count === 0 || this.#timeMs(0) + windowMs > nowMs) return 0
    return this.#firstWhere((place) => this.#timeMs(place) + windowMs > nowMs)
  }

  /** Returns the first index for which a monotonic condition holds. */
  #firstWhere(holds: (place: number) => boolean): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (holds(middle)) high = middle
      else low = middle + 1
    }
    return low
  }
}
