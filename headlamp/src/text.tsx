import { useTranslation } from '@kinvolk/headlamp-plugin/lib';
import { useCallback, useSyncExternalStore } from 'react';
import type { InBothLanguages } from './api';

/** Control characters and marks of direction, which would change what is read around them. */
const INVISIBLE = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Text of the cluster, with what can't be seen written out. */
export function visible(text: string): string {
  return text.replace(
    INVISIBLE,
    found => `\\u${found.codePointAt(0)!.toString(16).padStart(4, '0')}`
  );
}

/** Texts of this plugin, in the language of Headlamp. */
export function useTexts() {
  const { t, i18n, ready } = useTranslation();
  return { t, ready, language: useLanguage(i18n) };
}

/** A text that the API has in both languages: empty until the language is known, as `t` is. */
export function Sentence({ text }: { text: InBothLanguages }) {
  const { ready, language } = useTexts();
  if (!ready) return null;
  // What stands between backticks is code.
  const parts = visible(text[language]).split('`');
  return <>{parts.map((part, place) => (place % 2 ? <code key={place}>{part}</code> : part))}</>;
}

/** The language of Headlamp, if we have it: Headlamp's own hook shows a new one only with the next answer. */
function useLanguage(i18n: ReturnType<typeof useTranslation>['i18n']): 'en' | 'zh' {
  const subscribe = useCallback(
    (changed: () => void) => {
      i18n?.on('languageChanged', changed);
      return () => i18n?.off('languageChanged', changed);
    },
    [i18n]
  );
  return useSyncExternalStore(subscribe, () => (i18n?.language === 'zh' ? 'zh' : 'en'));
}
