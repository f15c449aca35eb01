/**
 * A set of the tools of one snapshot: bit `i` stands for the tool at index `i`.
 *
 * The gate keeps its decisions in these sets: a decision is a bit test, and layers are combined by an OR over a few words.
 */
export type Bits = Uint32Array

/** Returns the empty set for a snapshot of `size` tools. */
export function noBits(size: number): Bits {
  return new Uint32Array((size + 31) >>> 5)
}

function wordAt(bits: Bits, word: number): number {
  return bits[word] as number
}

export function hasBit(bits: Bits, index: number): boolean {
  return ((bits[index >>> 5] as number) & (1 << (index & 31))) !== 0
}

export function setBit(bits: Bits, index: number): void {
  bits[index >>> 5] = wordAt(bits, index >>> 5) | (1 << (index & 31))
}

/** Returns a set without one index; the same set if the index is not a member. `-1` is never a member. */
export function withoutBit(bits: Bits, index: number): Bits {
  if (index === -1 || !hasBit(bits, index)) return bits
  const rest = bits.slice()
  rest[index >>> 5] = wordAt(rest, index >>> 5) & ~(1 << (index & 31))
  return rest
}

/** Adds every member of `more` to `bits`. */
export function addBits(bits: Bits, more: Bits): void {
  for (let word = 0; word < bits.length; word++) bits[word] = wordAt(bits, word) | wordAt(more, word)
}

/** Returns the members of a snapshot of `size` tools that are not in `bits`. */
export function invertBits(bits: Bits, size: number): Bits {
  const inverse = bits.map((word) => ~word)
  const spare = size & 31
  if (spare !== 0) inverse[inverse.length - 1] = wordAt(inverse, inverse.length - 1) & ((1 << spare) - 1)
  return inverse
}

export function isEmpty(bits: Bits): boolean {
  for (let word = 0; word < bits.length; word++) if (bits[word] !== 0) return false
  return true
}

/** Returns the smallest member. */
export function firstOf(bits: Bits): number | undefined {
  for (let word = 0; word < bits.length; word++) {
    const members = wordAt(bits, word)
    if (members !== 0) return (word << 5) + 31 - Math.clz32(members & -members)
  }
  return undefined
}

/** Returns the members, in ascending order. */
export function membersOf(bits: Bits): number[] {
  const members: number[] = []
  for (let word = 0; word < bits.length; word++) {
    for (let rest = wordAt(bits, word); rest !== 0; rest &= rest - 1) {
      members.push((word << 5) + 31 - Math.clz32(rest & -rest))
    }
  }
  return members
}

/** Returns the indexes for which `test` returns true, out of `candidates` or of all. */
export function bitsWhere(size: number, test: (index: number) => boolean, candidates?: Bits): Bits {
  const bits = noBits(size)
  if (candidates) {
    for (const index of membersOf(candidates)) if (test(index)) setBit(bits, index)
  } else {
    for (let index = 0; index < size; index++) if (test(index)) setBit(bits, index)
  }
  return bits
}
