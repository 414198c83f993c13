import i18next from '@kinvolk/headlamp-plugin/lib/i18n/config';
import { createMuiTheme } from '@kinvolk/headlamp-plugin/lib/lib/themes';
import { initializePluginI18n } from '@kinvolk/headlamp-plugin/lib/plugin/pluginI18n';
import store from '@kinvolk/headlamp-plugin/lib/redux/stores/store';
import { ThemeProvider } from '@mui/material/styles';
import { cleanup, render, screen } from '@testing-library/react';
import type { ReactElement } from 'react';
import { Provider } from 'react-redux';
import zh from '../locales/zh/translation.json';
import manifest from '../package.json';
// What the API answers, by path: tests/contract/test_headlamp.py compares it with the application.
import answers from './answers.json';
import { AGGREGATED } from './api';
import { NodeSection } from './NodeSection';
import { PLUGIN } from './PageLink';
import { PodSection } from './PodSection';

const POD = <PodSection namespace="default" name="gpu-pod-default" cluster="" />;
const NODE = <NodeSection name="node3" cluster="" />;
const GROUPS = `${AGGREGATED}/namespaces/default/pods/gpu-pod-default/schedulerlog/groups`;
const FORBIDDEN = 'pods "gpu-pod-default" is forbidden';

/** Stands for Headlamp's server; `refused` has the status of each path that is not answered. */
function serve(refused: (path: string) => Response | undefined = () => undefined) {
  const found: Record<string, unknown> = {
    [AGGREGATED]: { kind: 'APIResourceList' },
    ...answers,
  };
  vi.stubGlobal('fetch', async (url: string) => {
    const { pathname, search } = new URL(url.replace(/([^:])\/\/+/g, '$1/'), 'http://localhost');
    if (pathname === '/plugins/schedulerlog/locales/zh/translation.json') return Response.json(zh);
    const path = pathname + search;
    return refused(path) ?? (path in found ? Response.json(found[path]) : noSuchPath());
  });
}

/** As an API server answers for a group that it does not have. */
function noSuchPath() {
  return new Response('404 page not found\n', { status: 404 });
}

/** As API servers refuse. */
function status(code: number, message: string) {
  return Response.json({ kind: 'Status', code, message }, { status: code });
}

function show(section: ReactElement) {
  const theme = createMuiTheme({ name: 'light', base: 'light' });
  render(
    <Provider store={store}>
      <ThemeProvider theme={theme}>{section}</ThemeProvider>
    </Provider>
  );
}

beforeAll(async () => {
  serve();
  await initializePluginI18n(PLUGIN, manifest, '/plugins/schedulerlog');
});

afterEach(async () => {
  cleanup();
  await i18next.changeLanguage('en');
});

test('a refused pod has the sentence, the changes and its nodes by refusal', async () => {
  serve();
  show(POD);
  await screen.findByText(/^No node that was offered takes the pod as things are\. Lower/);
  await screen.findByText(/^When it was tried at .* 5 of 9 nodes lack memory: 3,000 MiB asked/);
  await screen.findByText(
    'Lower nvidia.com/gpucores of ubuntu-container from 30 to 25: then it fits on node2.'
  );
  expect(screen.getByText('nvidia.com/gpumem').tagName).toBe('CODE');
});

test('its nodes are drawn as the API groups them', async () => {
  serve();
  show(POD);
  const { groups } = answers[GROUPS];
  for (const group of groups) {
    const row = (await screen.findByText(group.reason)).closest('tr');
    const cells = [...row!.cells].map(each => each.textContent);
    expect(cells).toEqual([
      `${group.nodes.length}`,
      group.reason,
      group.container,
      group.nodes.join(', '),
    ]);
  }
  expect(groups.flatMap(each => each.nodes)).toHaveLength(9);
});

test('a node that was not refused is no row', async () => {
  const picked = { ...answers[GROUPS].groups[0], is_refused: false, reason: 'of no refusal' };
  const groups = { ...answers[GROUPS], groups: [picked, ...answers[GROUPS].groups.slice(1)] };
  serve(asked => (asked === GROUPS ? Response.json(groups) : undefined));
  show(POD);
  await screen.findByText(answers[GROUPS].groups[1].reason);
  expect(screen.queryByText('of no refusal')).toBeNull();
});

test('the same in Chinese', async () => {
  serve();
  await i18next.changeLanguage('zh');
  show(POD);
  await screen.findByText(/9 个节点中有 5 个显存不足：5 个设备每个申请 3,000 MiB。$/);
  await screen.findByText('需要作何修改');
});

test('a node has its refusals by reason', async () => {
  serve();
  show(NODE);
  const reason = await screen.findByText('CardInsufficientMemory');
  expect(reason.closest('tr')?.textContent).toContain('2026');
});

test.each([
  ['may not be read', () => status(403, FORBIDDEN), /schedulerlog-view/],
  ['is not recorded', () => status(404, 'nothing is recorded'), /Nothing is recorded/],
  ['has no API server', () => status(503, 'service unavailable'), /Try again later/],
])('an answer that %s is no empty table', async (_, refusal, text) => {
  serve(path => (path === AGGREGATED ? undefined : refusal()));
  show(POD);
  await screen.findByText(text);
  expect(screen.queryByRole('table')).toBeNull();
});

test('an answer that is still asked for shows that', async () => {
  vi.stubGlobal('fetch', () => new Promise<never>(() => {}));
  show(POD);
  await screen.findByTitle('Asking schedulerlog');
});

test('who may not read is shown what the API server says', async () => {
  serve(path => (path === AGGREGATED ? undefined : status(403, FORBIDDEN)));
  show(NODE);
  await screen.findByText(new RegExp(FORBIDDEN));
});

test('a cluster without the aggregated API is told from a pod without a record', async () => {
  serve(noSuchPath);
  show(POD);
  await screen.findByText(/install the component aggregated-api/);
});

test('what the cluster names never becomes markup', async () => {
  const path = `${AGGREGATED}/namespaces/default/pods/gpu-pod-default/schedulerlog/diagnosis`;
  const hostile = { en: '<img src=x onerror=alert(1)>\u202egnp\u001b[31m', zh: '' };
  const diagnosis = { ...answers[path], headline: hostile };
  serve(asked => (asked === path ? Response.json(diagnosis) : undefined));
  show(POD);
  await screen.findByText('<img src=x onerror=alert(1)>\\u202egnp\\u001b[31m');
  expect(document.querySelector('img')).toBeNull();
});
