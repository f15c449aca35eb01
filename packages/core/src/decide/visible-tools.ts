import { sha256Hex } from '../hash.ts'
import { addBits, type Bits, invertBits, membersOf, noBits } from '../tools/bits.ts'
import { definitionHash } from '../tools/definition-hash.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'

/**
 * What is visible of a snapshot where some tools are denied and some must wait: shared by all who see the same.
 *
 * Each form of it is made when it is first asked for. A class, as a literal with getters costs a hidden class each time.
 */
export class VisibleTools {
  readonly #snapshot: Toolset
  readonly #deny: Bits
  readonly #wait: Bits
  #bits: Bits | undefined
  #tools: readonly Tool[] | undefined
  #ids: readonly string[] | undefined
  #fingerprint: string | undefined

  constructor(snapshot: Toolset, deny: Bits, wait: Bits) {
    this.#snapshot = snapshot
    this.#deny = deny
    this.#wait = wait
  }

  /** Not to be changed. */
  get bits(): Bits {
    return (this.#bits ??= visibleOf(this.#snapshot, this.#deny, this.#wait))
  }

  get tools(): readonly Tool[] {
    const { tools } = this.#snapshot
    return (this.#tools ??= Object.freeze(membersOf(this.bits).map((i) => tools[i] as Tool)))
  }

  get ids(): readonly string[] {
    return (this.#ids ??= Object.freeze(this.tools.map((tool) => tool.id)))
  }

  /** Hash of the visible definitions, 32 hex digits. */
  get fingerprint(): string {
    return (this.#fingerprint ??= sha256Hex(this.tools.map(definitionHash).join('\n')).slice(0, 32))
  }
}

function visibleOf({ size }: Toolset, deny: Bits, wait: Bits): Bits {
  const hidden = noBits(size)
  addBits(hidden, deny)
  addBits(hidden, wait)
  return invertBits(hidden, size)
}
