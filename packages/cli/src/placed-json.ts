import { parse, type ParseError, type ParseOptions, printParseErrorCode } from 'jsonc-parser'

/** Parses JSON, by default with comments. `problem` is the place and the mistake, such as `1:6: it is not JSON (…)`. */
export function readPlacedJson(
  text: string,
  options: ParseOptions,
): { readonly value: unknown; readonly problem?: string } {
  const errors: ParseError[] = []
  const value: unknown = parse(text, errors, options)
  const [error] = errors
  if (!error) return { value }
  const lines = text.slice(0, error.offset).split('\n')
  const place = `${lines.length}:${(lines.at(-1)?.length ?? 0) + 1}`
  // The codes are words: PropertyNameExpected.
  const why = printParseErrorCode(error.error)
    .replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ')
    .toLowerCase()
  return { value, problem: `${place}: it is not JSON (${why})` }
}
