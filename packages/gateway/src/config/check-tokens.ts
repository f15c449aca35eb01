import { Lexer } from 'yaml'
import { ConfigFileError } from './problems.ts'

/** About 9,000 clauses. */
const MAX_TOKENS = 200_000

/**
 * Checks that a text from a client can be parsed quickly. Its length is not enough, as each bracket may be a value.
 *
 * @throws {ConfigFileError}
 */
export function checkTokens(text: string, file: string, max = MAX_TOKENS): void {
  const tokens = new Lexer().lex(text)
  for (let count = 0; !tokens.next().done; count++)
    if (count === max) {
      const message = `the text has more than ${max} YAML tokens, more than a gateway parses`
      throw new ConfigFileError([{ file, line: 1, column: 1, path: '', message }])
    }
}
