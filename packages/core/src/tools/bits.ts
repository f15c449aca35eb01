/**
 * A set of the tools of one snapshot: bit `i` stands for the tool at index `i`.
 *
 * Everything the gate decides is kept in these, so that deciding is a bit test
 * and combining layers is an OR over a few words.
 */
export type Bits = Uint32Array

/** Gives the empty set for a snapshot of `size` tools. */
export function noBits(size: number): Bits {
  return new Uint32Array((size + 31) >>> 5)
}

export function hasBit(bits: Bits, index: number): boolean {
  return ((bits[index >>> 5] as number) & (1 << (index & 31))) !== 0
}

export function setBit(bits: Bits, index: number): void {
  bits[index >>> 5] = (bits[index >>> 5] as number) | (1 << (index & 31))
}

/** Gives a set without one member: the set itself where it is none. `-1` is never a member. */
export function withoutBit(bits: Bits, index: number): Bits {
  if (index === -1 || !hasBit(bits, index)) return bits
  const rest = bits.slice()
  rest[index >>> 5] = (rest[index >>> 5] as number) & ~(1 << (index & 31))
  return rest
}

/** Adds every member of `more` to `bits`. */
export function addBits(bits: Bits, more: Bits): void {
  for (let word = 0; word < bits.length; word++) bits[word] = (bits[word] as number) | (more[word] as number)
}

/** Gives the members of a snapshot of `size` tools that are not in `bits`. */
export function invertBits(bits: Bits, size: number): Bits {
  const inverse = bits.map((word) => ~word)
  const spare = size & 31
  if (spare !== 0) inverse[inverse.length - 1] = (inverse.at(-1) as number) & ((1 << spare) - 1)
  return inverse
}

export function isEmpty(bits: Bits): boolean {
  for (let word = 0; word < bits.length; word++) if (bits[word] !== 0) return false
  return true
}

/** Gives the smallest member. */
export function firstOf(bits: Bits): number | undefined {
  for (let word = 0; word < bits.length; word++) {
    const members = bits[word] as number
    if (members !== 0) return (word << 5) + 31 - Math.clz32(members & -members)
  }
  return undefined
}

/** Gives the members, in ascending order. */
export function membersOf(bits: Bits): number[] {
  const members: number[] = []
  for (let word = 0; word < bits.length; word++) {
    for (let rest = bits[word] as number; rest !== 0; rest &= rest - 1) {
      members.push((word << 5) + 31 - Math.clz32(rest & -rest))
    }
  }
  return members
}

/** Gives the set of the indexes for which `test` holds, out of `candidates` or of all. */
export function bitsWhere(size: number, test: (index: number) => boolean, candidates?: Bits): Bits {
  const bits = noBits(size)
  if (candidates) {
    for (const index of membersOf(candidates)) if (test(index)) setBit(bits, index)
  } else {
    for (let index = 0; index < size; index++) if (test(index)) setBit(bits, index)
  }
  return bits
}
