import { matchesGlob, parseGlob } from '@toolgate/core/toolset'

/** Returns what tells the tools that a host lets run beside the gate's: by names, or globs such as `agent-*`. */
export function createUngoverned(names: readonly string[] = []): (name: string) => boolean {
  const globs = names.map((name) => parseGlob(name))
  return (name) => globs.some((glob) => matchesGlob(glob, name))
}
