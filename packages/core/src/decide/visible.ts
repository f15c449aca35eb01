import type { Mark } from '../layers/mark.ts'
import { addBits, type Bits, bitsWhere, hasBit, invertBits } from '../tools/bits.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { Ceiling } from './decide.ts'
import type { Epoch } from './epoch.ts'
import { rule, type Ruling } from './ruling.ts'

/** Some tools of a snapshot. */
export interface Visible {
  readonly snapshot: Toolset
  readonly bits: Bits
}

/** Gives the tools that are visible in a view and today as well: what `decide` says of each, of all at once. */
export function visibleToday({ ruling, caller }: Ceiling, today: Epoch): Visible {
  return { snapshot: ruling.snapshot, bits: visibleInBoth(ruling, today.ruling(caller)) }
}

/** Gives the tools that are visible, and those that would be if a search found them: nothing else holds them back. */
export function findableToday({ ruling, caller }: Ceiling, today: Epoch): Visible {
  const first = withoutSearchLocks(ruling)
  const current = withoutSearchLocks(today.ruling(caller))
  return { snapshot: ruling.snapshot, bits: visibleInBoth(first, current) }
}

function visibleInBoth(first: Ruling, current: Ruling): Bits {
  const { snapshot } = first
  const { visible } = first.listing
  if (current === first) return visible
  if (current.snapshot === snapshot) return intersect(visible, current.listing.visible, snapshot.size)
  const visibleNow = current.listing.visible
  return bitsWhere(
    snapshot.size,
    (i) => {
      const now = current.snapshot.indexOf(snapshot.ids[i] as string)
      return now !== -1 && hasBit(visibleNow, now)
    },
    visible,
  )
}

function intersect(a: Bits, b: Bits, size: number): Bits {
  const outside = invertBits(a, size)
  addBits(outside, invertBits(b, size))
  return invertBits(outside, size)
}

function withoutSearchLocks(ruling: Ruling): Ruling {
  const { snapshot, marks } = ruling
  const others = marks.filter((mark) => !isSearchLock(mark))
  return others.length === marks.length ? ruling : rule(snapshot, others)
}

function isSearchLock(mark: Mark): boolean {
  return mark.lock?.unlock === 'search'
}
