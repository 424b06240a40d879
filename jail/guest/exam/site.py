# site.py - the beginning of candidate.py and of examiner.py, which start without the site module (-S): it takes as long as all the rest
# of an interpreter's start. It is loaded when a program imports what the standard library does not have.
import _sitebuiltins
import builtins
import sys


class Site:
    """The last finder: adds the folders of installed packages, once, and looks again."""

    def find_spec(self, name, path=None, target=None):
        if path is not None or name.partition(".")[0] in sys.stdlib_module_names:
            return None
        sys.meta_path.remove(self)
        import importlib.util
        import site

        site.main()
        return importlib.util.find_spec(name)


builtins.exit, builtins.quit = _sitebuiltins.Quitter("exit", ""), _sitebuiltins.Quitter("quit", "")
builtins.help = _sitebuiltins._Helper()
sys.meta_path.append(Site())
