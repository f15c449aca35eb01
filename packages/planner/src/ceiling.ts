import { definitionHash, type Tool, type View, type Visibility } from '@toolgate/core'
import type { PauseState } from './pause.ts'

/** Gives what a view sees now, with the hash of each definition. */
export function toolsOf(view: View): PauseState['tools'] {
  return view.narrow({}).tools.map((tool) => [tool.id, definitionHash(tool)] as const)
}

/**
 * Gives the visibility of a resumed run: what it saw when it paused, by the definitions of then, and of that what the
 * host shows now. It can only narrow; what is gone, hidden or changed since is as if it did not exist.
 */
export function ceilingOf(paused: PauseState['tools'], visibility: Visibility | undefined): Visibility {
  const hashes = new Map(paused)
  return async (context) => {
    const unchanged = new Set(context.tools.filter((tool) => isUnchanged(tool, hashes)).map(({ id }) => id))
    // What is no visibility, such as `null`, fails here, and then nothing is shown.
    const given = visibility === undefined ? context.tools : visibility
    const shown = typeof given === 'function' ? await given(context) : given
    return [...shown].filter((named) => unchanged.has(typeof named === 'string' ? named : named.id))
  }
}

function isUnchanged(tool: Tool, hashes: ReadonlyMap<string, string>): boolean {
  return hashes.get(tool.id) === definitionHash(tool)
}
