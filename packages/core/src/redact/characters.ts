/** Letters, digits, `_` and `-`: what keys and most tokens are made of. */
export function isWordCode(code: number): boolean {
  return isAlnum(code) || code === UNDERSCORE || code === DASH
}

export function isAlnum(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57)
}

export function isBlank(code: number): boolean {
  return code === 32 || code === 9
}

export function isQuote(code: number): boolean {
  return code === 34 || code === 39 || code === 96
}

export const UNDERSCORE = 95
export const DASH = 45
export const BACKSLASH = 92
export const COLON = 58
export const EQUALS = 61
export const PERCENT = 37
export const SLASH = 47
