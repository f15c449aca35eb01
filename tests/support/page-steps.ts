/** A block of a page that a test runs. `rule`: the first file of the page, with these lines at the end of its policy. */
export type PageBlock =
  | { readonly does: 'file' | 'rule' | 'append'; readonly name: string; readonly text: string }
  | { readonly does: 'run'; readonly text: string; readonly commands: readonly PageCommand[] }

/** A command of a page, and what it prints. */
export interface PageCommand {
  readonly command: string
  readonly prints: string
}

const BLOCK = /(?:<!-- (file|rule|append): (\S+) -->\n+)?```(yaml|console)\n([\s\S]*?)```/g

/** Returns the blocks of each section of a page that a test runs, by its heading. */
export function pageSections(page: string): ReadonlyMap<string, readonly PageBlock[]> {
  const [, ...sections] = page.split(/^## /m)
  return new Map(
    sections.map((section) => [section.slice(0, section.indexOf('\n')), [...section.matchAll(BLOCK)].flatMap(toBlock)]),
  )
}

function toBlock([, does, name = '', language, text = '']: RegExpMatchArray): readonly PageBlock[] {
  if (language === 'console') return [{ does: 'run', text, commands: toCommands(text) }]
  return does === undefined ? [] : [{ does: does as 'file', name, text }]
}

function toCommands(text: string): readonly PageCommand[] {
  const [, ...parts] = text.split(/^\$ /m)
  return parts.map((part) => {
    const end = part.indexOf('\n')
    return { command: part.slice(0, end), prints: part.slice(end + 1) }
  })
}
