/** The Unicode blocks with letters in two cases. */
const BLOCKS: readonly (readonly [first: number, last: number])[] = [
  [0x41, 0x58f],
  [0x10a0, 0x13ff],
  [0x1c80, 0x218f],
  [0x24b6, 0x24e9],
  [0x2c00, 0x2d2f],
  [0xa640, 0xa7ff],
  [0xab30, 0xabbf],
  [0xff21, 0xff5a],
  [0x10400, 0x105ff],
  [0x10c80, 0x10d8f],
  [0x118a0, 0x118df],
  [0x16e40, 0x16eff],
  [0x1e900, 0x1e943],
]
/** Pairs that full case folding expands to several letters, but simple case folding treats as one letter. */
const SAME: readonly (readonly number[])[] = [
  [0x390, 0x1fd3],
  [0x3b0, 0x1fe3],
  [0xfb05, 0xfb06],
]
/** A dotless `i`. Its upper case is `I`, but it does not fold to `i`. */
const DOTLESS_I = 0x131

let groups: ReadonlyMap<number, readonly number[]> | undefined

/** Returns the code points that are equal to one if case is ignored: Unicode's simple case folding, as with the flags `iu`. */
export function casesOf(codePoint: number): readonly number[] {
  return (groups ??= findGroups()).get(codePoint) ?? [codePoint]
}

/** Computed at first use, in about 5 ms. */
function findGroups(): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, readonly number[]>()
  const byFold = new Map<number, number[]>()
  for (const [first, last] of BLOCKS)
    for (let at = first; at <= last; at++) {
      const folded = at === DOTLESS_I ? at : fold(at)
      if (folded === at) continue
      const group = byFold.get(folded) ?? [folded]
      group.push(at)
      byFold.set(folded, group)
    }
  for (const group of [...byFold.values(), ...SAME]) for (const one of group) found.set(one, group)
  return found
}

function fold(codePoint: number): number {
  const text = String.fromCodePoint(codePoint)
  const upper = sameLength(text.toUpperCase(), text)
  return sameLength(upper.toLowerCase(), upper).codePointAt(0) ?? codePoint
}

function sameLength(changed: string, text: string): string {
  return changed.length === text.length ? changed : text
}
