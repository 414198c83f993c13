"""Table of the rules that judge the devices of a family; families that it lacks have NVIDIA's checks."""

from collections.abc import Mapping
from typing import Final

from engine.fit.judge.vendors.amd import fit_amd
from engine.fit.judge.vendors.ascend import fit_ascend
from engine.fit.judge.vendors.asking import FitVendor
from engine.fit.judge.vendors.enflame import fit_drs, fit_gcu
from engine.fit.judge.vendors.kunlun import fit_kunlun
from engine.fit.judge.vendors.metax import fit_one_device, fit_sgpu
from engine.fit.judge.vendors.neuron import fit_neuron
from engine.fit.judge.vendors.vastai import fit_biren, fit_vastai
from engine.hami.vendors import Family

VENDOR_FITS: Final[Mapping[Family, FitVendor]] = {
    Family.ASCEND: fit_ascend,
    Family.METAX_GPU: fit_one_device,
    Family.METAX_SGPU: fit_sgpu,
    Family.MTHREADS: fit_one_device,
    Family.KUNLUN: fit_kunlun,
    Family.XPU: fit_kunlun,
    Family.ENFLAME: fit_drs,
    Family.GCU: fit_gcu,
    Family.NEURON: fit_neuron,
    Family.AMD: fit_amd,
    Family.BIREN: fit_biren,
    Family.VASTAI: fit_vastai,
}
