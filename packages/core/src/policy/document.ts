import type { PolicyDocument } from '../ports/ports.ts'
import type { GroupSelectors, Selector } from '../tools/selector.ts'
import { type Revision, sha256Hex } from '@toolgate/values'
import { canonicalize } from '@toolgate/values/json'
import type { ParsedCondition } from './condition.ts'
import { type ParsedClause, type ParsedPolicy, parsePolicies } from './parse.ts'

const documents = new WeakMap<readonly ParsedPolicy[], PolicyDocument>()

/**
 * Returns policies as data, with the SHA-256 of that data in RFC 8785 form. Equal policies have equal hashes, in every
 * process. Computed at first use, once for each list.
 *
 * For a function, only its name is hashed: a changed function with the same name has the same hash.
 */
export function policyDocumentOf(parsed: readonly ParsedPolicy[], groups: GroupSelectors): PolicyDocument {
  const known = documents.get(parsed)
  if (known) return known
  const document = createDocument(parsed, groups)
  documents.set(parsed, document)
  return document
}

function createDocument(parsed: readonly ParsedPolicy[], groups: GroupSelectors): PolicyDocument {
  let text: string | undefined
  let hash: string | undefined
  const textNow = (): string => (text ??= canonicalize(toData(parsed, groups)).toWellFormed())
  return {
    get text() {
      return textNow()
    },
    get hash() {
      return (hash ??= sha256Hex(textNow()))
    },
  }
}

function toData(parsed: readonly ParsedPolicy[], groups: GroupSelectors): object {
  const { aliases } = groups
  return {
    ...(aliases === undefined || aliases.size === 0 ? {} : { aliases: Object.fromEntries(aliases) }),
    groups: Object.fromEntries([...groups].map(([name, selectors]) => [name, selectors.map(textOf)])),
    policies: parsed.map(policyData),
  }
}

/** Represents a function by its name. */
function functionData(name: string): object {
  return { $function: name }
}

function policyData({ name, allow, deny, ask, requireTags, decide, kinds, isShadow }: ParsedPolicy): object {
  const mode = isShadow ? { mode: 'shadow' } : {}
  if (decide) return { name, decide: functionData(name), ...(kinds.length > 0 && { kinds }), ...mode }
  return {
    name,
    ...mode,
    deny: deny.map(clauseData),
    ask: ask.map(clauseData),
    requireTags,
    ...(allow === undefined ? {} : { allow: allow.map(clauseData) }),
  }
}

export function clauseData({
  label,
  selectors,
  when,
  unless,
  input,
  message,
  approver,
  isShadow,
}: ParsedClause): object {
  return {
    label,
    match: selectors.map(textOf),
    ...conditionData('when', when),
    ...conditionData('unless', unless),
    ...conditionData('input', input),
    ...(message === undefined ? {} : { message }),
    ...(approver === undefined ? {} : { approver }),
    ...(isShadow ? { mode: 'shadow' } : {}),
  }
}

function conditionData(field: string, condition: ParsedCondition | undefined): object {
  if (condition === undefined) return {}
  const { text, functionName } = condition
  return { [field]: functionName === undefined ? text : functionData(functionName) }
}

function textOf({ text }: Selector): string {
  return text
}

/** The current policies. Any change creates a new object. */
export interface CurrentPolicies {
  /** Grows with every change, here or in the parent. */
  readonly revision: number
  readonly parsed: readonly ParsedPolicy[]
  /** A gate without any policy allows its tools and nothing else, and so do its forks. */
  readonly isBare: boolean
}

/** The policies of a gate: the current ones of its parent, and its own. All of them apply. */
export interface PolicyStack {
  current(): CurrentPolicies
  /** Replaces the gate's own policies immediately. `again` parses them again for other groups. */
  replace(own: readonly ParsedPolicy[], again?: () => readonly ParsedPolicy[]): void
}

interface PolicyStackOptions {
  readonly own: readonly ParsedPolicy[]
  /** Bumped with each replacement. */
  readonly changes: Revision
  readonly parent?: PolicyStack | undefined
  /** Returns another object when the groups have changed, so that policies are parsed again. */
  readonly groups?: () => object
  readonly again?: (() => readonly ParsedPolicy[]) | undefined
}

/** Returns a stack of a gate's own policies, on top of its parent's. */
export function createPolicyStack({ own, changes, parent, groups, again }: PolicyStackOptions): PolicyStack {
  let above = parent?.current()
  let parsedFor = groups?.()
  const read = (revision: number): CurrentPolicies => ({
    revision,
    parsed: [...(above?.parsed ?? []), ...own],
    isBare: above ? above.isBare : own.every(({ isShadow }) => isShadow),
  })
  let current = read(1)
  const renew = () => {
    above = parent?.current()
    current = read(current.revision + 1)
  }
  const isStale = () => parent?.current() !== above || (again !== undefined && groups?.() !== parsedFor)
  return {
    current() {
      if (isStale()) {
        if (again && groups?.() !== parsedFor) own = parseAgain(own, again)
        parsedFor = groups?.()
        renew()
      }
      return current
    },
    replace(next, nextAgain) {
      own = next
      again = nextAgain
      parsedFor = groups?.()
      renew()
      changes.bump()
    },
  }
}

/** A policy that names a removed group denies everything, because its meaning is unknown. */
function parseAgain(own: readonly ParsedPolicy[], again: () => readonly ParsedPolicy[]): readonly ParsedPolicy[] {
  try {
    return again()
  } catch {
    return [...own, ...parsePolicies({ name: 'a policy whose groups are gone', allow: [] }, new Map())]
  }
}
