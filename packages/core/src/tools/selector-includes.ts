import { type Glob, matchesGlob } from './glob.ts'
import type { ItemSelector, Selector } from './selector.ts'

type GlobSelector = Selector & { readonly kind: 'glob' }

/**
 * Returns whether one selector matches everything that another one does, including future tools. `false` if that is not
 * certain.
 */
export function includesSelector(wide: Selector, narrow: Selector): boolean {
  if (wide.kind === narrow.kind && wide.text === narrow.text) return true
  if (
    narrow.kind === 'group' &&
    narrow.members.length > 0 &&
    narrow.members.every((member) => includesSelector(wide, member))
  )
    return true
  switch (wide.kind) {
    case 'glob':
      return globIncludes(wide, narrow)
    case 'group':
      return wide.members.some((member) => includesSelector(member, narrow))
    case 'server':
      return isOfServer(wide.server, narrow)
    case 'resource':
    case 'prompt':
      return narrow.kind === wide.kind && itemIncludes(wide, narrow)
    default:
      return false
  }
}

const NO_NAMESPACE = ''

function globIncludes(wide: GlobSelector, narrow: Selector): boolean {
  const isAll = wide.namespace === undefined && isStars(wide.name)
  switch (narrow.kind) {
    case 'id':
      return [narrow.text, ...(narrow.target === undefined ? [] : [narrow.target])].every((id) => namesId(wide, id))
    case 'glob':
      return namespaceIncludes(wide.namespace, narrow.namespace) && textIncludes(wide.name, narrow.name)
    case 'tag':
    case 'category':
    case 'hint':
    case 'joined':
      return isAll
    // `*` matches no resources or prompts.
    default:
      return false
  }
}

function namesId({ namespace, name }: GlobSelector, id: string): boolean {
  const colon = id.indexOf(':')
  if (!matchesGlob(name, id.slice(colon + 1))) return false
  if (namespace === undefined) return true
  return colon === -1 ? isNoNamespace(namespace) : matchesGlob(namespace, id.slice(0, colon))
}

function namespaceIncludes(wide: Glob | undefined, narrow: Glob | undefined): boolean {
  if (wide === undefined) return true
  if (narrow === undefined) return false
  return isNoNamespace(narrow) || isNoNamespace(wide)
    ? isNoNamespace(narrow) && isNoNamespace(wide)
    : textIncludes(wide, narrow)
}

/** For items that templates may produce, only a whole server is certain. */
function itemIncludes(wide: ItemSelector, narrow: ItemSelector): boolean {
  return textIncludes(wide.server, narrow.server) && isStars(wide.name)
}

function isOfServer(server: string, narrow: Selector): boolean {
  switch (narrow.kind) {
    case 'id':
      return [narrow.text, narrow.target ?? narrow.text].every((id) => id.startsWith(`${server}:`))
    case 'glob':
      return narrow.namespace?.length === 1 && narrow.namespace[0] === server
    case 'resource':
    case 'prompt':
      return narrow.server.length === 1 && narrow.server[0] === server
    default:
      return false
  }
}

/** Stands for a star of the narrow pattern. No name contains it, so only a star of the wide pattern matches it. */
const STAR = '\u0000'

/** Returns whether one pattern matches every text that another one matches. */
function textIncludes(wide: Glob, narrow: Glob): boolean {
  return !wide.some((part) => part.includes(STAR)) && matchesGlob(wide, narrow.join(STAR))
}

function isStars(glob: Glob): boolean {
  return glob.length > 1 && glob.every((part) => part === '')
}

function isNoNamespace(glob: Glob): boolean {
  return glob.length === 1 && glob[0] === NO_NAMESPACE
}
